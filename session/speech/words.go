package speech

import "strings"

// ending says whether the period of an abbreviation may also end a sentence.
type ending int

const (
	never        ending = iota + 1 // something follows always: "Dr."
	beforeNumber                   // not where a number follows: "No. 5", but "I said no."
	maybe                          // only where the next word looks like a beginning: "etc."
)

// abbreviations are words that have a period of their own, written without it.
var abbreviations = kinds(map[ending]string{
	never: `Approx Cf Incl Ca Dr Mr Mrs Ms Prof Gen Sen Rep Gov Capt Cpt Lt Col Sgt Rev Hon Mt Ft Messrs Mme Mlle
		e.g i.e cf vs viz ca approx w.r.t resp incl excl Eg Ie eg ie E.g I.e`,
	beforeNumber: `Apt Apts No Nos no nos p pp Fig fig Figs figs Vol vol Sec sec Ch ch Eq eq Art Sect Tab tab Ref ref Nr
		Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec`,
	maybe: `etc al St Jr Sr Inc Ltd Corp Co Bros Ave Blvd Rd Dept Univ Assn est Est min max misc dept avg temp ext tel
		ft lb lbs oz tbsp tsp hr hrs sq mi yd gal Etc
		a.m p.m A.M P.M Ph.D M.D B.A M.A B.Sc M.Sc U.S U.K U.S.A U.N E.U D.C`,
})

func kinds(lists map[ending]string) map[string]ending {
	all := map[string]ending{}
	for kind, list := range lists {
		for word := range strings.FieldsSeq(list) {
			all[word] = kind
		}
	}
	return all
}

// starters are words that rarely follow within a sentence with a capital letter.
var starters = set(`A About After All Also Although Always An And Another Any Are As At Because Before Both But By Can Could Did Do Does During Each
	Even Every Everyone Finally First For From Had Has Have He Her Here His How However I If In Instead Is It Its Just Last Later Let Like Look Many
	Maybe Meanwhile More Most Much My Never Next No None Not Nothing Now Of Oh On Once One Only Or Other Others Our Perhaps Please Second See She
	Should Since So Some Someone Sometimes Soon Still Such Tell Than Thanks That The Their Then There Therefore These They This Those Though Thus To
	Today Tomorrow Try Two Under Unfortunately Until Use Was We Well Were What When Where Which While Who Why Will With Would Yes Yesterday Yet You
	Your I'm I've I'll I'd It's That's There's They're We're You're Don't Let's What's Here's He's She's Can't`)

func set(list string) map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		all[word] = true
	}
	return all
}

// spelledOut is how abbreviations are said. Those that are not here keep their letters.
var spelledOut = table(`
	Dr=Doctor Mr=Mister Mrs=Missus Ms=Miz Prof=Professor Gen=General Sen=Senator Rep=Representative Gov=Governor Capt=Captain Cpt=Captain
	Lt=Lieutenant Col=Colonel Sgt=Sergeant Rev=Reverend Hon=Honorable Mt=Mount Ft=Fort Messrs=Messieurs Mme=Madame Mlle=Mademoiselle
	e.g=for_example E.g=For_example eg=for_example Eg=For_example i.e=that_is I.e=That_is ie=that_is Ie=That_is
	cf=compare vs=versus viz=namely ca=circa approx=approximately Approx=Approximately Cf=Compare Incl=Including Ca=Circa Etc=Et_cetera sq=square w.r.t=with_respect_to resp=respectively
	incl=including excl=excluding etc=et_cetera Jr=Junior Sr=Senior Inc=Incorporated Ltd=Limited Corp=Corporation Co=Company Bros=Brothers
	Ave=Avenue Blvd=Boulevard Rd=Road Dept=Department dept=department Univ=University Assn=Association est=estimated Est=Established
	min=minimum max=maximum misc=miscellaneous avg=average temp=temperature ext=extension tel=telephone Tel=telephone
	a.m=AM p.m=PM A.M=AM P.M=PM Ph.D=P_H_D M.D=M_D B.A=B_A M.A=M_A B.Sc=B_S_C M.Sc=M_S_C
	U.S=U_S U.K=U_K U.S.A=U_S_A U.N=U_N E.U=E_U D.C=D_C`)

// beforeANumber is how those are said that a number follows.
var beforeANumber = table(`Apt=Apartment Apts=Apartments No=number no=number Nos=numbers nos=numbers Nr=number p=page pp=pages Fig=Figure fig=figure Figs=Figures figs=figures
	Vol=Volume vol=volume Sec=Section sec=section Sect=Section Ch=Chapter ch=chapter Eq=Equation eq=equation Art=Article Tab=Table tab=table
	Ref=Reference ref=reference`)

// months are said in full, also with the abbreviation's period.
var months = table(`Jan=January Feb=February Mar=March Apr=April May=May Jun=June Jul=July Aug=August Sep=September Sept=September Oct=October
	Nov=November Dec=December January=January February=February March=March April=April June=June July=July August=August September=September
	October=October November=November December=December`)

var monthNames = strings.Fields("January February March April May June July August September October November December")

// table reads "short=long" pairs; _ stands for a space.
func table(list string) map[string]string {
	all := map[string]string{}
	for pair := range strings.FieldsSeq(list) {
		short, long, _ := strings.Cut(pair, "=")
		all[short] = strings.ReplaceAll(long, "_", " ")
	}
	return all
}

// unit is how a measure is said of one and of more.
type unit struct{ one, many string }

// units by symbol. Those that are also words count only where they touch their number.
var units = measures(`
	km=kilometer cm=centimeter mm=millimeter µm=micrometer μm=micrometer nm=nanometer m=meter mi=mile yd=yard ft=foot/feet in=inch/inches
	kg=kilogram g=gram mg=milligram µg=microgram t=ton lb=pound lbs=pound oz=ounce
	L=liter l=liter mL=milliliter ml=milliliter gal=gallon
	ms=millisecond µs=microsecond μs=microsecond us=microsecond ns=nanosecond s=second sec=second min=minute mins=minute h=hour hr=hour hrs=hour d=day
	B=byte KB=kilobyte kB=kilobyte MB=megabyte GB=gigabyte TB=terabyte PB=petabyte KiB=kibibyte MiB=mebibyte GiB=gibibyte TiB=tebibyte
	kbps=kilobit_per_second/kilobits_per_second Mbps=megabit_per_second/megabits_per_second Gbps=gigabit_per_second/gigabits_per_second
	kbit/s=kilobit_per_second/kilobits_per_second Mbit/s=megabit_per_second/megabits_per_second Gbit/s=gigabit_per_second/gigabits_per_second
	MB/s=megabyte_per_second/megabytes_per_second GB/s=gigabyte_per_second/gigabytes_per_second kB/s=kilobyte_per_second/kilobytes_per_second
	Hz=hertz/hertz kHz=kilohertz/kilohertz MHz=megahertz/megahertz GHz=gigahertz/gigahertz dB=decibel dBFS=decibels_full_scale/decibels_full_scale
	W=watt kW=kilowatt MW=megawatt GW=gigawatt Wh=watt_hour kWh=kilowatt_hour MWh=megawatt_hour V=volt mV=millivolt kV=kilovolt A=amp mA=milliamp
	mAh=milliamp_hour J=joule kJ=kilojoule cal=calorie kcal=kilocalorie N=newton Pa=pascal hPa=hectopascal bar=bar
	°C=degree_Celsius/degrees_Celsius °F=degree_Fahrenheit/degrees_Fahrenheit °=degree ºC=degree_Celsius/degrees_Celsius ºF=degree_Fahrenheit/degrees_Fahrenheit º=degree ℃=degree_Celsius/degrees_Celsius
	km/h=kilometer_per_hour/kilometers_per_hour kph=kilometer_per_hour/kilometers_per_hour mph=mile_per_hour/miles_per_hour
	m/s=meter_per_second/meters_per_second kn=knot rpm=revolution_per_minute/revolutions_per_minute bpm=beat_per_minute/beats_per_minute
	fps=frame_per_second/frames_per_second m²=square_meter km²=square_kilometer m³=cubic_meter cm²=square_centimeter cm³=cubic_centimeter
	ft²=square_foot/square_feet px=pixel pt=point x=time k=thousand/thousand M=million/million bn=billion/billion
	Mb/s=megabit_per_second/megabits_per_second Gb/s=gigabit_per_second/gigabits_per_second Ω=ohm kΩ=kilohm MΩ=megohm mol=mole ng=nanogram USD=dollar EUR=euro GBP=pound CHF=Swiss_franc
	wpm=word_per_minute/words_per_minute ha=hectare %=percent/percent ¢=cent tbsp=tablespoon tsp=teaspoon`)

// touching are units that would be misread apart from their number: "5 in total", "4 x 4", "the 3 t".
var touching = set("in x t d k M B A N us J W pt V")

func measures(list string) map[string]unit {
	all := map[string]unit{}
	for symbol, names := range table(list) {
		one, many, two := strings.Cut(names, "/")
		if !two {
			many = one + "s"
		}
		all[symbol] = unit{one, many}
	}
	return all
}

// currency is how money is said: of one, of more, and the same of its hundredths.
type currency struct{ one, many, cent, cents string }

var currencies = map[string]currency{
	"$": {"dollar", "dollars", "cent", "cents"},
	"€": {"euro", "euros", "cent", "cents"},
	"£": {"pound", "pounds", "penny", "pence"},
	"¥": {"yen", "yen", "sen", "sen"},
	"₹": {"rupee", "rupees", "paisa", "paise"},
}

// symbols is how characters are said that stand for words; what is neither here nor a letter, a digit or punctuation is left out.
var symbols = map[rune]string{
	'&': " and ", '+': " plus ", '=': " equals ", '<': " less than ", '>': " greater than ", '≤': " at most ", '≥': " at least ", '≈': " about ",
	'≠': " is not ", '±': " plus or minus ", '×': " times ", '÷': " divided by ", '→': " to ", '⇒': " so ", '←': " from ", '°': " degrees ",
	'§': " section ", '%': " percent ", '@': " at ", '/': " ", '\\': " ", '_': " ", '|': ", ", '–': ", ", '—': ", ", '(': ", ", ')': ", ", '√': " root of ",
	'⅓': " one third ", '⅔': " two thirds ", '⅛': " one eighth ", '⅜': " three eighths ", '⅝': " five eighths ", '⅞': " seven eighths ",
	'₀': " zero ", '₁': " one ", '₂': " two ", '₃': " three ", '₄': " four ", '₅': " five ", '₆': " six ", '₇': " seven ", '₈': " eight ", '₉': " nine ", '∈': " in ",
	'½': " one half ", '¼': " one quarter ", '¾': " three quarters ", '²': " squared ", '³': " cubed ", '^': " to the ", 'µ': " micro ", '∞': " infinity ", 'π': " pi ",
	'$': " dollar ", '€': " euro ", '£': " pound ", '¥': " yen ", '…': "...", '’': "'", '‘': "'",
	'。': ". ", '、': ", ", '！': "! ", '？': "? ", '，': ", ", '：': ": ",
	'.': ".", ',': ",", ';': ";", ':': ":", '!': "!", '?': "?", '\'': "'", '-': " ",
}
