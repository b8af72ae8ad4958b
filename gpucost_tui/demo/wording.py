"""The words of the synthetic tickets. Changing one changes the corpus, its hash and the model.

``<a|b>`` is a choice, ``{slot}`` a value of :data:`SLOTS` or one that the generator makes
(``amount``, ``order``, ``number``). A family is one template: every text that it can give.
"""

from __future__ import annotations

#: Category -> family -> template whose category is clear.
CLEAR: dict[str, dict[str, str]] = {
    "billing": {
        "charged-twice": "<I was|We were|My card was> charged <twice|two times> for {order}, "
        "<on {day} and again on {day}|{amount} each time>.",
        "wrong-invoice": "The invoice for {order} <shows|says|lists> {amount}, <but|although> "
        "<we agreed on|the offer said|your site showed> {amount}.",
        "refund-missing": "I am still waiting for the refund of {amount} for the {product}"
        "<|, promised on {day}>.",
        "tax-number": "<Could|Can> you <issue|send> <an invoice|a receipt> with <our|my> "
        "<company name|VAT number|tax number> for {order}?",
        "card-declined": "My <card|bank card|credit card> is <declined|refused|rejected> "
        "<whenever|every time> I try to pay <for the {product}|{amount}>.",
        "unknown-fee": "What is the <fee|surcharge|extra charge> of {amount} on my "
        "<statement|bank statement|bill> of {day}?",
        "voucher": "The <voucher|discount code|coupon> was not <taken off|deducted from|applied "
        "to> the total <of|for> {order}, the price is too high.",
        "instalments": "<Is it possible|Would it be possible> to pay {amount} <in three parts|in "
        "instalments|by bank transfer> <instead of|rather than> <with my card|all at once>?",
    },
    "delivery": {
        "late": "{order} was <due|promised|announced> for {day} and <still hasn't arrived|is still "
        "not here|has not come>.",
        "tracking": "The tracking of {order} has <not moved|shown nothing new|been stuck> in "
        "{city} since {day}.",
        "wrong-address": "You <sent|shipped> the {product} to <my old address|the wrong address|a "
        "street in {city}>, <please redirect it|can the driver be told>?",
        "not-received": "The <courier|driver> says {order} was <handed over|delivered|left> <to a "
        "neighbour|at the door|in the garage>, but <nobody here has it|there is nothing>.",
        "incomplete": "Only <part|half> of {order} came: the {product} was <missing from the "
        "parcel|not in the box>.",
        "when": "When will the {product} be <shipped|dispatched|sent out>? <I need it by "
        "{day}|It is a present for {name}>.",
        "parcel-shop": "The parcel shop in {city} <has no record of|can't find> my package, and "
        "the <collection|pick-up> number <is wrong|is unknown to them>.",
        "customs": "{order} is <held|stuck> at customs in {city}; which papers does the carrier "
        "need to <release|hand over> the shipment?",
    },
    "access": {
        "password": "I <forgot|lost> my password and the reset <mail|e-mail|link> <never comes|"
        "does not arrive|has expired>, my user name is {user}.",
        "locked": "My account {user} <is|has been> <locked|blocked> after <three|several|too many> "
        "<attempts|tries>, please unlock it.",
        "second-step": "The <code|six-digit code> for the two-step login of {user} <never "
        "reaches|is not sent to> my <phone|new phone|mobile>.",
        "address-change": "I want to change the e-mail address of my account {user}, <but the old "
        "one no longer exists|but the page does not let me>.",
        "unknown-user": "It says 'unknown user' when I sign in <with|using> {user}<|, although I "
        "registered on {day}>.",
        "signed-out": "The site <signs me out|logs me out> <after a minute|every {number} "
        "minutes|again and again>, <on the laptop and on the phone|in every browser>.",
        "stranger": "<A stranger|A former colleague|Someone in {city}> seems to have signed in "
        "<with my name|to the profile of {user}>; how do I lock them out?",
        "permission": "<How do I|Can you> <give|grant> {name} permission to log in as {user} "
        "without <sharing|telling> the password?",
    },
    "defect": {
        "dead": "The {product} <does not turn on|won't start|stays dark> since {day}, even with "
        "<another cable|new batteries|a full battery>.",
        "noise": "My {product} makes a <loud|strange|grinding> noise <when|as soon as> it runs<|, "
        "and it gets hot>.",
        "broken": "The <handle|lid|hinge|switch|button> of the {product} <broke|came off|cracked> "
        "after <a few|{number}> <days|weeks|uses>.",
        "display": "The display of the {product} <flickers|shows stripes|has a dead spot> <since "
        "the last update|from the first day|since {day}>.",
        "leak": "The {product} <leaks|loses water|drips> <at the bottom|on the left side|when it "
        "is full>, <the floor is wet|I noticed it on {day}>.",
        "battery": "The battery of the {product} <lasts|holds> <an hour|{number} minutes|half a "
        "day> <at most|only>, <you advertise ten hours|it used to be a whole day>.",
        "loose": "Something is loose inside the {product}: it rattles, and <one button|a switch> "
        "has <had no effect|done nothing> since {day}.",
        "repair": "I need a <spare part|repair> under warranty, the {product} <stopped "
        "working|gave up> <on {day}|after {number} weeks>.",
    },
    "cancellation": {
        "by-mistake": "Please cancel {order}, <I ordered it by mistake|I found it elsewhere|we no "
        "longer need it>.",
        "subscription": "I <want|would like> to end my <subscription|membership|plan> for the "
        "{product} <at the end of the month|as of {day}|right away>.",
        "renewal": "<How can I|Where do I> <stop|switch off> the automatic renewal of <my plan|the "
        "subscription> for the {product}?",
        "second-thoughts": "I <changed my mind|have second thoughts> about the {product}, <please "
        "take it off the order|stop the order before it leaves>.",
        "contract": "We <do not wish|don't want> to extend the contract for {order} <beyond "
        "{day}|any longer>; please confirm <the termination|this in writing>.",
        "appointment": "<Cancel|Please drop> my <booking|appointment> of {day} with the technician "
        "in {city}, <I can't be there|something came up>.",
        "withdrawal": "I <withdraw|am withdrawing> from the purchase of the {product} within the "
        "fourteen days, <please confirm this in writing|tell me what to do>.",
        "moved": "My <mother|father|colleague> {name} <has died|has moved away|is leaving>, so "
        "<the subscription|the plan|the contract> should <not go on|be closed> from {day} on.",
    },
    "praise": {
        "thanks-to": "<Thank you|Thanks> to {name} from your team, <who solved everything in "
        "{number} minutes|so patient and friendly>!",
        "product": "The {product} is <wonderful|excellent|a joy>, <exactly what I was looking "
        "for|better than I hoped|a lovely present for {name}>.",
        "happy": "<I just want|I only wanted> to say <how happy|how pleased> we are with the "
        "{product}<| and your service>.",
        "service": "<Great|Excellent|Superb> service in {city}, <I'll be back|I have told {name} "
        "and all my friends|five stars from me>.",
        "years": "After {number} years <as a customer|with you> I can only <praise|recommend> your "
        "<shop|team|work> in {city}.",
        "website": "<Compliments|Well done>: the page of the {product} is <clear|quick|lovely> and "
        "<easy to use|a pleasure to read>.",
        "regards": "{name} went out of <his|her> way to help <me|us>; please pass on our "
        "<warmest|kindest> regards<| to the team in {city}>.",
        "every-day": "<My daughter|My son|My neighbour> {name} uses the {product} every day and "
        "<loves it|would not give it back>, <keep it up|lovely work>.",
    },
}

#: (likelier category, other category) -> template that both would claim. Each category is the
#: likelier of two and the other of two, so equal classes give the drawn shares exactly.
AMBIGUOUS: dict[tuple[str, str], str] = {
    ("delivery", "defect"): "The <box|parcel> of {order} was <crushed|torn|wet>, and the {product} "
    "inside has a <scratch|dent|crack>.",
    ("defect", "access"): "The app for the {product} <crashes|freezes|closes> as soon as I <enter|"
    "type> the password of {user}.",
    ("access", "billing"): "In my account {user} the <invoice|receipt> for {order} <can't be "
    "opened|shows an empty page>.",
    ("billing", "cancellation"): "{amount} was taken for another year of the {product}, <which I "
    "never asked for|and I do not want it>.",
    ("cancellation", "praise"): "<We loved|I enjoyed> the {product} for {number} <months|years>, "
    "but <now it is time to stop|we do not need it any more>.",
    ("praise", "delivery"): "{order} <is here at last|came on {day} after all>, thank you for "
    "<finding it|looking into it>.",
    ("delivery", "billing"): "I paid {amount} for <express|next-day> delivery of {order}, and it "
    "<went by ordinary post|took until {day}>.",
    (
        "billing",
        "praise",
    ): "The {amount} for the {product} <arrived|came back> on {day}, thanks for "
    "the <quick|friendly> answer.",
    ("praise", "defect"): "The <second|replacement> {product} works <well|as it should>, <unlike "
    "the first|the first one did not>, thanks to {name}.",
    ("defect", "cancellation"): "The {product} is <not as described|nothing like the picture>, "
    "<please take it back|I am sending it back on {day}>.",
    ("cancellation", "access"): "Please <delete|remove> the <account|profile> {user}, <I can't do "
    "it myself|the button is greyed out>.",
    ("access", "delivery"): "I can't <see|open> the tracking page of {order} <from|in> my account "
    "{user}.",
}

#: Families of :data:`CLEAR` that no tuning entry uses: forms the model never saw.
HELD_OUT: frozenset[str] = frozenset(
    {"instalments", "parcel-shop", "permission", "loose", "moved", "every-day"}
)

#: Category -> remarks that touch it in passing, put into tickets about something else.
REMARKS: dict[str, tuple[str, ...]] = {
    "billing": (
        "By the way, the invoice of {day} was correct.",
        "I have already paid, so that is not the point.",
        "The price of {amount} was fair.",
        "My last refund came within {number} days.",
        "Paying by card went smoothly this time.",
    ),
    "delivery": (
        "The parcel itself came on {day}, a day early.",
        "The courier in {city} is always friendly.",
        "Delivery was never a problem before.",
        "It was shipped quickly, I must say.",
        "I had it sent to my office in {city}.",
    ),
    "access": (
        "I can log in, so it is not that.",
        "I changed my password on {day}, just in case.",
        "My account name is {user}, if you need it.",
        "I am signed in while I write this.",
        "I use the app with the same login as {name}.",
    ),
    "defect": (
        "An older {product} broke once, but you replaced it.",
        "The small scratch on the lid does not bother me.",
        "Nothing is broken, do not worry.",
        "The battery is fine, as far as I can tell.",
        "It makes a little noise, which is normal.",
    ),
    "cancellation": (
        "I do not want to cancel anything.",
        "I might extend my subscription next year.",
        "Earlier I thought of ending the contract, but I will stay.",
        "My other order can go ahead.",
        "If this takes longer than {day} I may have to withdraw.",
    ),
    "praise": (
        "Otherwise I am happy with your shop.",
        "{name} on the phone was very kind.",
        "I usually recommend you to everyone.",
        "The {product} I bought last year is excellent.",
        "Thanks for your good work so far.",
    ),
}

#: Sentences that say nothing about the category.
FILLERS: tuple[str, ...] = (
    "I am writing from {city}, where I have lived for {number} years.",
    "I tried to call on {day}, but after {number} minutes of music I hung up.",
    "Please write to me rather than call, since I work nights.",
    "My colleague {name} suggested that I contact you directly.",
    "I have read the questions and answers on your page and found nothing that fits.",
    "You can reach me in the afternoon, except on {day}.",
    "I bought it as a present for {name}, who turns {number} this month.",
    "We are a small <office|school|bakery|workshop|clinic> in {city} with {number} people.",
    "This is the second time I write, the first message was on {day}.",
    "I have attached two pictures and a short description.",
    "My English is not perfect, I hope that you understand me.",
    "We are travelling to {city} on {day} and have little time.",
    "I spoke with {name}, who promised to pass it on.",
    "Maybe I have overlooked something, in that case I apologize.",
    "In the meantime I borrowed a {product} from {name}.",
    "I would be glad if somebody could look at it before {day}.",
    "If you need anything else, just ask.",
    "The weather here in {city} has been {mood}, so we were at home all week.",
    "I usually do not write such long messages.",
    "My {relative} told me to be patient, so I waited until {day}.",
    "I kept all papers and the original packaging.",
    "The reference on the paper is {order}, in case that helps.",
    "I am not angry, only a little {feeling}.",
    "Perhaps it has to do with the {season} holidays.",
    "On {day} I was in your shop in {city}, but it was closed.",
    "My {relative} and I share one mailbox, so please put my name into the subject.",
    "I have been reading your newsletter since the {season}.",
    "We also own a {product}, which has nothing to do with this.",
    "I looked into the manual, page {number}, without success.",
    "It would be enough to answer with a short yes or no.",
    "As an engineer I know how hard it is to keep everything running.",
    "There is no hurry before {day}, but after that it becomes difficult.",
    "Please excuse spelling mistakes, I am typing on a small <phone|tablet>.",
    "I do not know which department is the right one, so please forward this.",
    "At our <café|kiosk|studio|library> in {city} everybody is {feeling} about it.",
    "The person at the counter, {name} I think, could not say more.",
    "I wrote down the time: it was {clock} on {day}.",
    "Between {clock} and {clock} I am at my desk.",
    "The {colour} {product} is the one I mean, not the {colour} one.",
    "My {relative} says “it will be fine”, and I hope so.",
    "We moved from {city} to {city} in the {season}.",
    "I am {feeling}, to be honest, and so is my {relative}.",
    'Somebody at work said: "ask them, they\'re quick".',
    "I copied {name} so that we both know what happens next.",
    "It happened while we were making dinner for {number} guests.",
    "For {number} weeks I have been meaning to write this.",
    "Our {relative} in {city} has the same model in {colour}.",
    "I had hoped to settle this on my own, without bothering anyone.",
    "Let me know which details are missing.",
    "The number on the back is {number}{number}, if I read it correctly.",
)

GREETINGS: tuple[str, ...] = (
    "Hello,",
    "Hi,",
    "Hi there,",
    "Good morning,",
    "Good evening,",
    "Dear team,",
    "Dear all,",
    "Dear Sir or Madam,",
    "Dear {name},",
    "Hello {name},",
    "To whom it may concern,",
    "[{order}]",
)

CLOSINGS: tuple[str, ...] = (
    "Regards, {name}",
    "Kind regards, {name}",
    "Best wishes from {city}, {name}",
    "Yours sincerely, {name}",
    "Cheers, {name}",
    "{name}, {city}",
    "- {name}",
    "Please help.",
    "What now?",
)

EMOJI: tuple[str, ...] = ("🙂", "😕", "🙏", "👍", "😅", "📦", "❤️", "🤔")

#: Slot -> values.
SLOTS: dict[str, tuple[str, ...]] = {
    name: tuple(" ".join(value.split()) for value in values.split(","))
    for name, values in {
        "product": """
            kettle, toaster, coffee maker, blender, hand mixer, rice cooker, slow cooker, juicer,
            food processor, waffle iron, bread machine, milk frother, espresso machine, vacuum
            cleaner, steam mop, air purifier, humidifier, fan heater, desk lamp, floor lamp, alarm
            clock, clock radio, headphones, earphones, bluetooth speaker, soundbar, turntable,
            microphone, webcam, keyboard, trackball, monitor, docking station, printer, scanner,
            router, hard drive, memory card, power bank, charger, tablet, e-reader, smart watch,
            fitness tracker, bathroom scale, hair dryer, shaver, electric toothbrush, sewing
            machine, cordless drill, jigsaw, sander, lawn mower, hedge trimmer, pressure washer,
            garden hose, pond pump, tent lantern, camping stove, cool box, baby monitor, bottle
            warmer, bicycle light, car vacuum, dash camera, doorbell camera, thermostat, smoke
            alarm, weather station, crêpe maker, café press""",
        "name": """
            Anna, Bernd, Chiara, Dmitri, Elif, Farid, Greta, Hassan, Ines, Jonas, Katya, Liam, Mina,
            Nils, Olga, Pedro, Quentin, Rosa, Samir, Tessa, Umar, Vera, Wanda, Xavier, Yusuf, Zoë,
            José, Łukasz, Søren, François, Jürgen, Renée Hill, Mrs Novak, Mr Okafor, Ms Lindqvist,
            Mr Tanaka, Mrs Moreau, Ms Haddad, Mr O'Brien, Mrs Kowalska, Dr Weiss, Mr Silva, Ms
            Petrov, Mrs Ng, Mr Baker, Ms Carter, Mrs Dahl, Mr Evans, Ms Fischer, Mr García, Mrs
            Huber, Ms Ivanova""",
        "city": """
            Aachen, Bergen, Cork, Dresden, Exeter, Faro, Ghent, Haarlem, Innsbruck, Jena, Krakow,
            Leeds, Malmö, Nantes, Oulu, Porto, Quimper, Riga, Seville, Turin, Uppsala, Valencia,
            Warsaw, York, Zürich, Aarhus, Basel, Cádiz, Derby, Essen, Florence, Graz, Hull, Izmir,
            Linz, Metz, Norwich, Odense, Pisa, Rouen, Split, Tallinn, Utrecht, Vienna, Zagreb,
            Kraków""",
        "day": """
            Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday, the first of March, the
            third of May, the ninth of June, the tenth of July, the twelfth of August, the second of
            April, the last of October, Christmas Eve, Easter Monday""",
        "colour": """
            black, white, red, blue, green, grey, yellow, orange, purple, silver, brown, turquoise,
            beige, golden, pink""",
        "relative": """
            mother, father, sister, brother, aunt, uncle, cousin, grandmother, grandfather, wife,
            husband, niece, nephew, flatmate, landlord, boss, teacher""",
        "feeling": """
            tired, puzzled, surprised, curious, confused, worried, nervous, impatient, relieved,
            uncertain, sceptical, hopeful, embarrassed, thoughtful""",
        "mood": "grey, rainy, stormy, cold, hot, windy, foggy, icy, mild, dreadful",
        "season": "spring, summer, autumn, winter",
        "clock": "8 a.m., 9:15, 10:30, noon, 1:45, 3 p.m., 4:20, 6:05, half past seven, midnight",
    }.items()
}
